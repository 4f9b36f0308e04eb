import com.google.inject.AbstractModule;
import com.google.inject.Guice;
import com.google.inject.Injector;
import com.google.inject.Key;
import com.google.inject.name.Names;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Creates a child injector of Guice for each request, with a binding named after the request. */
class Requests {
    private static final int REQUESTS = 1_500;

    private final Injector application = Guice.createInjector();
    private int next;
    private int length;

    private void work() throws InterruptedException {
        for (int i = 0; i < REQUESTS; i++) {
            request("request " + ++next);
        }
        System.gc();
        Thread.sleep(300);
        request("last");
    }

    private void request(String name) {
        Injector child = application.createChildInjector(new AbstractModule() {
            @Override
            protected void configure() {
                bind(String.class).annotatedWith(Names.named(name)).toInstance(name);
            }
        });
        length += child.getInstance(Key.get(String.class, Names.named(name))).length();
    }

    public static void main(String[] args) throws Exception {
        Requests program = new Requests();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
