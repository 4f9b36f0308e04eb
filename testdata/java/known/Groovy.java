import groovy.lang.GroovyShell;

/** GROOVY-7683. */
public class Groovy {
    public static void main(String[] args) throws Exception {
        Dumps.around(args, 20, number -> new GroovyShell().evaluate("x = " + number));
    }
}
