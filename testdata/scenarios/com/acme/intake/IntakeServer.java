package com.acme.intake;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/** A bounded queue is full with 60 batches, but each batch receives more and more forms. */
class IntakeServer {
    private static final int FORMS = 12_000;

    private final Intake intake = new Intake();
    private int next;

    private IntakeServer() {
        for (int i = 0; i < 60; i++) {
            intake.batches.add(new Batch());
        }
    }

    private void work(boolean leak) {
        List<Batch> all = new ArrayList<>(intake.batches);
        for (int i = 0; i < FORMS; i++) {
            all.get(++next % all.size()).forms.add(new Form(next, "applicant " + next));
        }
        if (!leak) {
            all.forEach(batch -> batch.forms.clear());
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        IntakeServer server = new IntakeServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Intake {
    final BlockingQueue<Batch> batches = new ArrayBlockingQueue<>(60);
}

class Batch {
    final List<Form> forms = new ArrayList<>();
}

class Form {
    final int number;
    final String applicant;

    Form(int number, String applicant) {
        this.number = number;
        this.applicant = applicant;
    }
}
