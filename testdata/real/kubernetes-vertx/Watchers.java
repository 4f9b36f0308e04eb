import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.NamespacedKubernetesClient;
import io.fabric8.kubernetes.client.RequestConfig;
import io.fabric8.kubernetes.client.RequestConfigBuilder;
import io.fabric8.kubernetes.client.vertx.VertxHttpClientFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Uses a new settings object for each request. The Vert.x client of Kubernetes keeps the client that it derives for each request. */
class Watchers {
    private static final int REQUESTS = 500;

    private final NamespacedKubernetesClient client;
    private int letters;

    private Watchers() {
        Config config = new ConfigBuilder(Config.empty()).withMasterUrl("http://127.0.0.1:9").withNamespace("shop").build();
        client = new KubernetesClientBuilder().withConfig(config).withHttpClientFactory(new VertxHttpClientFactory()).build()
                .adapt(NamespacedKubernetesClient.class);
    }

    private void work() {
        for (int i = 0; i < REQUESTS; i++) {
            RequestConfig once = new RequestConfigBuilder().withRequestRetryBackoffLimit(0).build();
            letters += client.withRequestConfig(once).call(c -> c.getNamespace()).length();
        }
    }

    public static void main(String[] args) throws Exception {
        Watchers program = new Watchers();
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
