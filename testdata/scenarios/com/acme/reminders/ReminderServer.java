package com.acme.reminders;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;

/** Guests are reminded a day later, unless they leave: a cancelled timer task stays in the queue until it is due. */
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
