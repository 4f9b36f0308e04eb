import io.vertx.core.AbstractVerticle;
import io.vertx.core.DeploymentOptions;
import io.vertx.core.Vertx;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;

/** Deploys Vert.x verticles, each with its own worker pool, and undeploys them. */
class Deployments {
    private static final int DEPLOYMENTS = 400;

    private final Vertx vertx = Vertx.vertx();
    private int next;

    private void work() throws Exception {
        for (int i = 0; i < DEPLOYMENTS; i++) {
            DeploymentOptions options = new DeploymentOptions()
                    .setWorker(true)
                    .setWorkerPoolName("pool " + ++next)
                    .setWorkerPoolSize(1);
            String id = vertx.deployVerticle(new AbstractVerticle() {}, options)
                    .toCompletionStage().toCompletableFuture().get(20, TimeUnit.SECONDS);
            vertx.undeploy(id).toCompletionStage().toCompletableFuture().get(20, TimeUnit.SECONDS);
        }
        System.gc();
        Thread.sleep(1_500);
    }

    public static void main(String[] args) throws Exception {
        Deployments program = new Deployments();
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
