import javax.ws.rs.client.ClientBuilder;
import javax.ws.rs.client.WebTarget;

/** jersey-3058. */
public class Jersey {
    public static void main(String[] args) throws Exception {
        WebTarget target = ClientBuilder.newClient().target("http://example.com");
        Dumps.around(args, 20, number -> target.property("a", "b").request().buildGet());
    }
}
