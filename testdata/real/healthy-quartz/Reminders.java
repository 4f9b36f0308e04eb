import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayDeque;
import java.util.Date;
import java.util.Deque;
import org.quartz.Job;
import org.quartz.JobBuilder;
import org.quartz.JobDetail;
import org.quartz.JobExecutionContext;
import org.quartz.JobKey;
import org.quartz.Scheduler;
import org.quartz.TriggerBuilder;
import org.quartz.impl.StdSchedulerFactory;

/** Schedules reminders as Quartz jobs: 3,000 are scheduled at each dump, and each phase replaces all of them. */
class Reminders {
    private static final int AHEAD = 3_000;

    public static final class Reminder implements Job {
        @Override
        public void execute(JobExecutionContext context) {}
    }

    private final Scheduler scheduler;
    private final Deque<JobKey> ahead = new ArrayDeque<>();
    private int next;

    private Reminders() throws Exception {
        System.setProperty("org.quartz.threadPool.threadCount", "2");
        System.setProperty("org.quartz.scheduler.skipUpdateCheck", "true");
        scheduler = StdSchedulerFactory.getDefaultScheduler();
        scheduler.start();
    }

    private void work() throws Exception {
        for (int i = 0; i < AHEAD; i++) {
            JobDetail job = JobBuilder.newJob(Reminder.class)
                    .withIdentity("reminder " + ++next)
                    .usingJobData("text", "call customer " + next)
                    .build();
            scheduler.scheduleJob(job, TriggerBuilder.newTrigger()
                    .startAt(new Date(System.currentTimeMillis() + 3_600_000L + next))
                    .build());
            ahead.add(job.getKey());
            if (ahead.size() > AHEAD) {
                scheduler.deleteJob(ahead.remove());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Reminders program = new Reminders();
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
