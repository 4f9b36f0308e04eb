import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor;

/** KAFKA-7660. */
public class Kafka {
    public static void main(String[] args) throws Exception {
        Metrics metrics = new Metrics();
        Sensor parent = metrics.sensor("parent");
        Dumps.around(args, 1000, number -> {
            metrics.sensor("child-" + number, parent);
            metrics.removeSensor("child-" + number);
        });
    }
}
