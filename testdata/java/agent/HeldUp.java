/**
 * As an agent of `-javaagent`, delays the start of the JVM until a line of input. As the program, keeps 16 MB of objects. A thread that
 * already ran when the agent was attached is sampled only after it has allocated the JVM's own interval, which is 512 KB on average. With
 * only 2 MB of objects, one run in fifty had almost no samples.
 */
public class HeldUp {
    static Object[] kept;

    static class Kept {
        long a, b, c;
    }

    public static void premain(String options) throws Exception {
        System.out.println("READY 1");
        System.in.read();
    }

    public static void main(String[] args) throws Exception {
        kept = new Object[500_000];
        for (int i = 0; i < kept.length; i++) kept[i] = new Kept();
        System.out.println("READY 2");
        System.in.read();
    }
}
