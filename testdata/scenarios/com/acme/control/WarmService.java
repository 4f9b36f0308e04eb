package com.acme.control;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntUnaryOperator;

/**
 * Warms up: reflection generates accessors after some calls, lambdas are linked at first use, strings are interned until all words are
 * known, and small results are cached. All of this growth ends by itself.
 */
class WarmService {
    private static final int WORDS = 12_000;
    private static final int[] PART = {3, 6, 6, 6};

    private final Map<String, Word> dictionary = new HashMap<>();
    private final List<IntUnaryOperator> steps = new ArrayList<>();
    private final Map<String, Method> handlers = new HashMap<>();
    private int checksum;

    private void learn(int part) {
        for (int i = 0; i < WORDS * part / 6; i++) {
            String text = ("word-" + i).intern();
            dictionary.computeIfAbsent(text, Word::new).uses++;
        }
    }

    private void call(int part) throws ReflectiveOperationException {
        Method[] methods = Handlers.class.getDeclaredMethods();
        for (int n = 0; n < methods.length * part / 6; n++) {
            Method method = handlers.computeIfAbsent("handler" + n, name -> {
                try {
                    return Handlers.class.getDeclaredMethod(name, int.class);
                } catch (NoSuchMethodException e) {
                    throw new AssertionError(e);
                }
            });
            for (int i = 0; i < 2_000; i++) {
                checksum += (int) method.invoke(null, i);
            }
        }
    }

    private void link() {
        if (steps.isEmpty()) {
            steps.add(x -> x + 1);
            steps.add(x -> x * 3);
            steps.add(x -> x ^ checksum);
            steps.add(Integer::reverse);
            steps.add(Integer::bitCount);
        }
        for (IntUnaryOperator step : steps) {
            for (int i = 0; i < 20_000; i++) {
                checksum = step.applyAsInt(checksum);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        WarmService service = new WarmService();
        for (int phase = 1; phase <= 4; phase++) {
            service.learn(PART[phase - 1]);
            service.call(PART[phase - 1]);
            service.link();
            System.out.println("READY " + phase);
            System.out.flush();
            in.readLine();
        }
    }
}

class Word {
    final String text;
    int uses;

    Word(String text) {
        this.text = text;
    }
}

class Handlers {
    static int handler0(int i) {
        return i;
    }

    static int handler1(int i) {
        return i + 1;
    }

    static int handler2(int i) {
        return i * 2;
    }

    static int handler3(int i) {
        return i ^ 3;
    }

    static int handler4(int i) {
        return i >>> 4;
    }

    static int handler5(int i) {
        return i % 5;
    }
}
