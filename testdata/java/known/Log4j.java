import org.apache.log4j.Logger;

/** azkaban-835. */
public class Log4j {
    public static void main(String[] args) throws Exception {
        Dumps.around(args, 1000, number -> Logger.getLogger("job" + number));
    }
}
