import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.client.ActiveMQClient;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientProducer;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSessionFactory;
import org.apache.activemq.artemis.api.core.client.ServerLocator;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;

/** Sends orders to an embedded Artemis broker with a queue that has no consumer. */
class Orders {
    private static final int MESSAGES = 10_000;

    private static void work(ClientSession session, ClientProducer producer) throws Exception {
        for (int i = 0; i < MESSAGES; i++) {
            ClientMessage message = session.createMessage(false);
            message.getBodyBuffer().writeString("order " + i);
            producer.send(message);
        }
    }

    public static void main(String[] args) throws Exception {
        Path folder = Files.createTempDirectory("orders");
        Configuration configuration = new ConfigurationImpl();
        configuration.setPersistenceEnabled(false);
        configuration.setSecurityEnabled(false);
        configuration.setBrokerInstance(folder.toFile());
        configuration.addAcceptorConfiguration("in-vm", "vm://0");
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        broker.setConfiguration(configuration);
        broker.start();
        ServerLocator locator = ActiveMQClient.createServerLocator("vm://0");
        ClientSessionFactory factory = locator.createSessionFactory();
        ClientSession session = factory.createSession();
        session.createQueue(QueueConfiguration.of("orders").setRoutingType(RoutingType.ANYCAST));
        ClientProducer producer = session.createProducer("orders");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= Integer.getInteger("phases", 3); phase++) {
            work(session, producer);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
