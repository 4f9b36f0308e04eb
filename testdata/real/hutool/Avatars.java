import cn.hutool.cache.CacheUtil;
import cn.hutool.cache.impl.WeakCache;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Keeps pictures in a weak cache of Hutool, with users as keys. The values refer to their keys, so no entry is removed. */
class Avatars {
    private static final int USERS = 10_000;

    /** A user. The program drops it after the request. */
    private static class User {
        private final byte[] name = new byte[32];
    }

    private final WeakCache<User, byte[]> pictures = CacheUtil.newWeakCache(0);

    private void work() throws InterruptedException {
        for (int i = 0; i < USERS; i++) {
            pictures.put(new User(), new byte[64]);
        }
        System.gc();
        Thread.sleep(300);
        pictures.put(new User(), new byte[64]);
    }

    public static void main(String[] args) throws Exception {
        Avatars program = new Avatars();
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
