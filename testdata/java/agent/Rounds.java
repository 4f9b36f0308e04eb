import com.sun.tools.attach.AgentInitializationException;
import com.sun.tools.attach.VirtualMachine;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Rounds THREADS: starts and stops counting in its own JVM, under load. Each line of input is a command, and each answer is a line {@code READY}.
 * {@code load LIBRARY OPTIONS} loads the agent ({@code READY code}). {@code work N} lets THREADS threads allocate N times in five ways. {@code
 * collect} runs GCs. {@code figures} prints the used and committed bytes of the metaspace, the bytes of compiled code, the number of constant pool
 * entries of some classes of this program and of the JDK, the rounds of the load, and its last wrong result. The program needs {@code
 * -Djdk.attach.allowAttachSelf=true}. For constant pools it needs {@code jdk.internal.access} and {@code jdk.internal.reflect} of {@code java.base}.
 */
public class Rounds {
    static volatile Object sink;
    static volatile String wrong = "none";
    static volatile long rounds;

    static class Node {
        final Node next;
        final Object value;

        Node(Node next, Object value) {
            this.next = next;
            this.value = value;
        }
    }

    static void object(int i) { sink = new Node(null, null); }

    static void bytes(int i) { sink = new byte[i % 100]; }

    static void levels(int i) { sink = new int[2][3]; }

    static void caught(int i) {
        try {
            if (i % 16 == 0) throw new IllegalStateException(null, null) {
                @Override
                public Throwable fillInStackTrace() { return this; }
            };
            sink = new long[i % 5];
        } catch (RuntimeException | Error e) {
            sink = null;
        } catch (Throwable e) {
            sink = e;
        }
    }

    static void lambdas(int i) {
        Function<Object, Node> make = value -> new Node(null, value);
        sink = make.apply(null);
    }

    static void work(int n) {
        for (int i = 0; i < n; i++) {
            object(i);
            bytes(i);
            levels(i);
            caught(i);
            lambdas(i);
        }
    }

    /** The load: work that runs all the time, and whose result is checked. */
    static class Load implements Runnable {
        @Override
        public void run() {
            while (true) {
                Node list = null;
                for (int i = 0; i < 1_000; i++) list = new Node(list, new int[] {i});
                long sum = 0;
                for (Node at = list; at != null; at = at.next) sum += ((int[]) at.value)[0];
                Map<Integer, Integer> map = new LinkedHashMap<>();
                for (int i = 0; i < 500; i++) map.merge(i % 100, i, Integer::sum);
                ArrayDeque<String> deque = new ArrayDeque<>();
                for (int i = 0; i < 100; i++) deque.add("text " + i);
                String joined = IntStream.range(0, 50).mapToObj(Integer::toString).collect(Collectors.joining(","));
                if (sum != 499_500 || map.size() != 100 || deque.size() != 100 || joined.length() != 139) {
                    wrong = sum + " " + map.size() + " " + deque.size() + " " + joined;
                }
                rounds++;
            }
        }
    }

    static String figures() throws Exception {
        long used = 0, committed = 0, code = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            if (pool.getName().equals("Metaspace")) {
                used = pool.getUsage().getUsed();
                committed = pool.getUsage().getCommitted();
            } else if (pool.getName().startsWith("Code")) {
                code += pool.getUsage().getUsed();
            }
        }
        long entries = 0;
        try {
            for (Class<?> of : new Class<?>[] {Rounds.class, Node.class, Load.class, LinkedHashMap.class, ArrayDeque.class, ArrayList.class}) {
                entries += Pools.entries(of);
            }
        } catch (IllegalAccessError e) {
            entries = -1;
        }
        return used + " " + committed + " " + code + " " + entries + " " + rounds + " " + wrong.replace(' ', '_');
    }

    static class Pools {
        static int entries(Class<?> of) throws Exception {
            Class<?> secrets = Class.forName("jdk.internal.access.SharedSecrets");
            Object access = secrets.getMethod("getJavaLangAccess").invoke(null);
            Object pool = Class.forName("jdk.internal.access.JavaLangAccess").getMethod("getConstantPool", Class.class).invoke(access, of);
            return (int) pool.getClass().getMethod("getSize").invoke(pool);
        }
    }

    static int load(String library, String options) throws Exception {
        VirtualMachine self = VirtualMachine.attach(Long.toString(ProcessHandle.current().pid()));
        try {
            self.loadAgentPath(library, options);
            return 0;
        } catch (AgentInitializationException e) {
            return e.returnValue();
        } finally {
            self.detach();
        }
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[0]);
        for (int i = 0; i < 2; i++) {
            Thread load = new Thread(new Load());
            load.setDaemon(true);
            load.start();
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", 3);
            String answer = "";
            switch (words[0]) {
                case "load":
                    answer = " " + load(words[1], words[2]);
                    break;
                case "work": {
                    int n = Integer.parseInt(words[1]);
                    Thread[] all = new Thread[threads];
                    for (int i = 0; i < threads; i++) {
                        all[i] = new Thread(() -> work(n));
                        all[i].start();
                    }
                    for (Thread thread : all) thread.join();
                    break;
                }
                case "collect":
                    System.gc();
                    System.gc();
                    break;
                default:
                    answer = " " + figures();
            }
            System.out.println("READY" + answer);
        }
    }
}
