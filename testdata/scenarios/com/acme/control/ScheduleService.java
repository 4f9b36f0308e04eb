package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Has 3,000 scheduled reminders at any time. Each phase cancels all and schedules as many. */
class ScheduleService {
    private static final int REMINDERS = 3_000;

    private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1);

    private void work(int phase) {
        timer.getQueue().clear();
        for (int i = 0; i < REMINDERS; i++) {
            timer.schedule(new ScheduledReminder("reminder " + i), 1, TimeUnit.HOURS);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ScheduleService service = new ScheduleService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
        service.timer.shutdownNow();
    }
}

class ScheduledReminder implements Runnable {
    final String text;

    ScheduledReminder(String text) {
        this.text = text;
    }

    @Override
    public void run() {}
}
