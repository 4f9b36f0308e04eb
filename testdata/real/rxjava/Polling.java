import io.reactivex.Observable;
import io.reactivex.disposables.Disposable;
import io.reactivex.subjects.PublishSubject;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Starts polls with RxJava. A poll would repeat when a subject emits, but is disposed before the subject emits. */
class Polling {
    private static final int POLLS = 1_500;

    private final PublishSubject<String> again = PublishSubject.create();

    private void work() {
        for (int i = 0; i < POLLS; i++) {
            long[] answer = new long[40];
            Disposable poll = Observable.just("poll")
                    .doOnNext(text -> answer[0]++)
                    .repeatWhen(done -> done.switchMap(ignored -> again))
                    .subscribe();
            poll.dispose();
        }
    }

    public static void main(String[] args) throws Exception {
        Polling program = new Polling();
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
