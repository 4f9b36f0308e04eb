package com.acme.sheet;

import java.beans.PropertyChangeEvent;
import java.beans.PropertyChangeListener;
import java.beans.PropertyChangeSupport;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/** Each view of a sheet listens to its changes. A closed view does not remove its listener. */
class SheetServer {
    private static final int VIEWS = 3_000;

    private final Sheet sheet = new Sheet();
    private int next;

    private void work(boolean leak) {
        List<SheetView> opened = new ArrayList<>();
        for (int i = 0; i < VIEWS; i++) {
            opened.add(new SheetView("view " + ++next));
        }
        sheet.changes = sheet.withListeners(opened, leak);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        SheetServer server = new SheetServer();
        for (int phase = 1; phase <= 3; phase++) {
            server.work(args[0].equals("leak"));
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Sheet {
    PropertyChangeSupport changes = new PropertyChangeSupport(this);

    /** PropertyChangeSupport copies its array for each new listener, so all listeners are added at once. */
    PropertyChangeSupport withListeners(List<SheetView> views, boolean leak) {
        for (SheetView view : views) {
            changes.addPropertyChangeListener(view);
            if (!leak) {
                changes.removePropertyChangeListener(view);
            }
        }
        return changes;
    }
}

class SheetView implements PropertyChangeListener {
    final String title;
    final int[] columns = new int[24];

    SheetView(String title) {
        this.title = title;
    }

    @Override
    public void propertyChange(PropertyChangeEvent event) {
        columns[0]++;
    }
}
