import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.util.ParameterizedTypeImpl;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Type;

/** Parses answers with Fastjson as a generic type. Each call creates a new type object, with the same type arguments. */
class Answers {
    private static final int ANSWERS = 2_000;

    /** An answer of a service. */
    public static class Answer<T> {
        public T result;
        public String text;
    }

    /** The content of an answer. */
    public static class User {
        public String name;
    }

    private long length;

    private void work() {
        for (int i = 0; i < ANSWERS; i++) {
            Type type = new ParameterizedTypeImpl(new Type[] {User.class}, null, Answer.class);
            Answer<User> answer = JSON.parseObject("{\"result\":{\"name\":\"Ada\"},\"text\":\"yes\"}", type);
            length += answer.text.length();
        }
    }

    public static void main(String[] args) throws Exception {
        Answers program = new Answers();
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
