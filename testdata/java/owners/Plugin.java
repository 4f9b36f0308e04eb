import java.util.ArrayList;

/** A plugin. Its class is loaded once for each plugin. */
public class Plugin extends ArrayList<Object> {
    private static final long serialVersionUID = 1;
}
