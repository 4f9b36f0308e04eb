import javax.crypto.Cipher;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/** JDK-8168469. */
public class Provider {
    public static void main(String[] args) throws Exception {
        Dumps.around(args, 10, number -> Cipher.getInstance("AES", new BouncyCastleProvider()));
    }
}
