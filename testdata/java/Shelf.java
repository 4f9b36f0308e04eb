import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * Keeps boxes on a shelf: 10,000 more before each READY. Changes nothing while it waits.
 *
 * Shelf [MEGABYTES]: also keeps this number of megabytes, whose content cannot be compressed.
 */
public class Shelf {
    static final class Box {
        final int number;

        Box(int number) {
            this.number = number;
        }
    }

    static final List<Box> boxes = new ArrayList<>();
    static final List<byte[]> ballast = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        int megabytes = args.length > 0 ? Integer.parseInt(args[0]) : 0;
        Random random = new Random(4711);
        for (int i = 0; i < 16 * megabytes; i++) {
            byte[] block = new byte[1 << 16];
            random.nextBytes(block);
            ballast.add(block);
        }
        for (int phase = 1; phase <= 3; phase++) {
            for (int i = 0; i < 10_000; i++) {
                boxes.add(new Box(boxes.size()));
            }
            System.out.println("READY " + phase);
            if (System.in.read() < 0) {
                return;
            }
        }
    }
}
