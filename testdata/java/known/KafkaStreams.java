import java.util.HashMap;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.streams.processor.internals.StreamsMetricsImpl;

/** KAFKA-6925. */
public class KafkaStreams {
    public static void main(String[] args) throws Exception {
        StreamsMetricsImpl metrics = new StreamsMetricsImpl(new Metrics(), "group", new HashMap<String, String>());
        Dumps.around(args, 300, number -> metrics.removeSensor(
                metrics.addLatencyAndThroughputSensor("scope", "entity" + number, "work", Sensor.RecordingLevel.INFO)));
    }
}
