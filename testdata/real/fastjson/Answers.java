import com.alibaba.fastjson.JSON;
import com.alibaba.fastjson.util.ParameterizedTypeImpl;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Type;

/** Answers are parsed by Fastjson as a generic type that is made anew for each, of the same arguments. */
class Answers {
    private static final int ANSWERS = 2_000;

    /** What a service answers. */
    public static class Answer<T> {
        public T result;
        public String text;
    }

    /** Its content. */
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
        for (int phase = 1; phase <= 3; phase++) {
            program.work();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        System.exit(0);
    }
}
