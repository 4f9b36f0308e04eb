/** Drip: allocates a little every few milliseconds, keeps some of it for a while, and never ends. */
public class Drip {
    static final Object[] kept = new Object[10_000];

    public static void main(String[] args) throws Exception {
        for (int n = 0; ; n++) {
            for (int i = 0; i < 50; i++) kept[(50 * n + i) % kept.length] = i % 2 == 0 ? new byte[500] : new long[60];
            Thread.sleep(5);
        }
    }
}
