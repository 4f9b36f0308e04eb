import io.netty.util.concurrent.FastThreadLocal;

/** netty-8017. */
public class Netty {
    public static void main(String[] args) throws Exception {
        Dumps.around(args, 2000, number -> {
            FastThreadLocal<byte[]> local = new FastThreadLocal<>();
            local.set(new byte[64]);
            local.remove();
        });
    }
}
