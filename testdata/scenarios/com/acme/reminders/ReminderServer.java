package com.acme.reminders;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;

/** Schedules a reminder for each guest a day later. If the guest leaves, the cancelled timer task stays in the queue until it is due. */
class ReminderServer {
    private static final int GUESTS = 10_000;

    private final Reminders reminders = new Reminders();
    private final Map<Integer, String> rooms = new HashMap<>();
    private long guest;

    private ReminderServer() {
        for (int i = 0; i < 15_000; i++) {
            rooms.put(i, "room " + i);
        }
    }

    private void work(boolean leak) {
        for (int i = 0; i < GUESTS; i++) {
            Reminder reminder = new Reminder(++guest, "Dear guest " + guest);
            reminders.later(reminder);
            reminder.cancel();
        }
        if (!leak) {
            reminders.forgetCancelled();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        ReminderServer server = new ReminderServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Reminders {
    private static final long DAY = 24 * 60 * 60 * 1_000L;

    private final Timer timer = new Timer("reminders", true);

    Reminders() {
        // The timer's thread waits for the first task of the queue, and would remove this task if it were cancelled.
        timer.schedule(new Reminder(0, "night audit"), DAY / 2);
    }

    void later(Reminder reminder) {
        timer.schedule(reminder, DAY);
    }

    void forgetCancelled() {
        timer.purge();
    }
}

class Reminder extends TimerTask {
    final long guest;
    final String text;

    Reminder(long guest, String text) {
        this.guest = guest;
        this.text = text;
    }

    @Override
    public void run() {
        System.err.println(text);
    }
}
