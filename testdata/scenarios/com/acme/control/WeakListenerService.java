package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/** Has 2,000 open windows. A model refers to them as listeners by weak references. Each phase closes all windows and opens as many. */
class WeakListenerService {
    private static final int WINDOWS = 2_000;

    private final List<OpenWindow> open = new ArrayList<>();
    private final List<WeakReference<OpenWindow>> listeners = new ArrayList<>();

    private void work(int phase) {
        open.clear();
        System.gc();
        listeners.removeIf(listener -> listener.get() == null);
        for (int i = 0; i < WINDOWS; i++) {
            OpenWindow window = new OpenWindow("window " + i);
            open.add(window);
            listeners.add(new WeakReference<>(window));
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        WeakListenerService service = new WeakListenerService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class OpenWindow {
    final String title;
    final int[] rows = new int[40];

    OpenWindow(String title) {
        this.title = title;
    }
}
