package com.acme.control;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Keeps notes on 8,000 parcels in a weak map. The parcels live as long as the program. Each phase replaces all notes. */
class WeakKeyService {
    private final Parcel[] parcels = new Parcel[8_000];
    private final Cache<Parcel, ParcelNote> notes =
            Caffeine.newBuilder().weakKeys().executor(Runnable::run).build();

    private WeakKeyService() {
        for (int i = 0; i < parcels.length; i++) {
            parcels[i] = new Parcel(i);
        }
    }

    private void work(int phase) {
        for (Parcel parcel : parcels) {
            notes.put(parcel, new ParcelNote(parcel.number + " in phase " + phase));
        }
        notes.cleanUp();
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        WeakKeyService service = new WeakKeyService();
        for (int phase = 1; phase <= 4; phase++) {
            service.work(phase);
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Parcel {
    final int number;

    Parcel(int number) {
        this.number = number;
    }
}

class ParcelNote {
    final String text;

    ParcelNote(String text) {
        this.text = text;
    }
}
