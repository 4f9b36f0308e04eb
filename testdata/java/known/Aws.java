import software.amazon.awssdk.http.apache.ApacheHttpClient;

/** aws-sdk-java-v2-1679. */
public class Aws {
    public static void main(String[] args) throws Exception {
        Dumps.around(args, 20, number -> ApacheHttpClient.create());
    }
}
