import com.formdev.flatlaf.util.MultiResolutionImageSupport;
import java.awt.Dimension;
import java.awt.Image;
import java.awt.image.BufferedImage;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Paints one icon often, at the same size. FlatLaf keeps an image for each painting, because its cache compares sizes by identity. */
class Icons {
    private static final int PAINTINGS = 1_500;

    private final Image icon = MultiResolutionImageSupport.create(
            0,
            new Dimension[] {new Dimension(16, 16), new Dimension(32, 32)},
            size -> new BufferedImage(size.width, size.height, BufferedImage.TYPE_INT_ARGB));
    private int pixels;

    private void work() {
        for (int i = 0; i < PAINTINGS; i++) {
            pixels += MultiResolutionImageSupport.getResolutionVariant(icon, 32, 32).getWidth(null);
        }
    }

    public static void main(String[] args) throws Exception {
        Icons program = new Icons();
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
