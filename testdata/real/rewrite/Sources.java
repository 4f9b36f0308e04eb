import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.openrewrite.java.tree.Space;

/** Reads the white space of Java sources with OpenRewrite. Its weak map of known spaces has values that refer to their keys. */
class Sources {
    private static final int SPACES = 6_000;

    private int next;
    private int letters;

    private void work() throws InterruptedException {
        for (int i = 0; i < SPACES; i++) {
            String indent = "\n" + " ".repeat(++next % 100) + "\n" + " ".repeat(next / 100);
            letters += Space.format(indent).getWhitespace().length();
        }
        System.gc();
        Thread.sleep(300);
    }

    public static void main(String[] args) throws Exception {
        Sources program = new Sources();
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
