/** As the agent that `-javaagent` loads it holds up the start of the JVM until a line is read; then it keeps objects. */
public class HeldUp {
    static Object[] kept;

    static class Kept {
        long a, b, c;
    }

    public static void premain(String options) throws Exception {
        System.out.println("READY 1");
        System.in.read();
    }

    public static void main(String[] args) throws Exception {
        kept = new Object[50_000];
        for (int i = 0; i < kept.length; i++) kept[i] = new Kept();
        System.out.println("READY 2");
        System.in.read();
    }
}
