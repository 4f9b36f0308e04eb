import io.kubernetes.client.informer.cache.Cache;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.openapi.models.V1Pod;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Adds and removes pods, each in its own namespace. The index of the Kubernetes client keeps an empty set for each namespace. */
class Namespaces {
    private static final int NAMESPACES = 8_000;

    private final Cache<V1Pod> pods = new Cache<>();
    private int next;

    private void work() {
        for (int i = 0; i < NAMESPACES; i++) {
            V1Pod pod = new V1Pod().metadata(new V1ObjectMeta().name("worker").namespace("build-" + ++next));
            pods.add(pod);
            pods.delete(pod);
        }
    }

    public static void main(String[] args) throws Exception {
        Namespaces program = new Namespaces();
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
