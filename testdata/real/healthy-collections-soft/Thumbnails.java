import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collections;
import java.util.Map;
import org.apache.commons.collections4.map.AbstractReferenceMap.ReferenceStrength;
import org.apache.commons.collections4.map.ReferenceMap;

/**
 * Keeps thumbnails as soft values of a map of Commons Collections. There is enough memory, so no reference is cleared, and each phase adds
 * thumbnails.
 */
class Thumbnails {
    private static final int THUMBNAILS = 6_000;

    private final Map<String, byte[]> thumbnails = Collections.synchronizedMap(
            new ReferenceMap<>(ReferenceStrength.HARD, ReferenceStrength.SOFT));
    private int next;

    private void work() {
        for (int i = 0; i < THUMBNAILS; i++) {
            thumbnails.put("picture " + ++next, new byte[800]);
        }
    }

    public static void main(String[] args) throws Exception {
        Thumbnails program = new Thumbnails();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (int phase = 1; phase <= 3; phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
