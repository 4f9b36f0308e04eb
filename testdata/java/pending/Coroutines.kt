package com.acme

import com.sun.management.HotSpotDiagnosticMXBean
import java.lang.management.ManagementFactory
import java.util.concurrent.ConcurrentLinkedQueue
import kotlin.random.Random
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.delay
import kotlinx.coroutines.launch

/** Starts random numbers of coroutines, prints the expected groups (kind, number, lines), and writes a heap dump. */
private val kept = ConcurrentLinkedQueue<Any>()

private fun place(method: String, line: Int) = "com.acme.CoroutinesKt.$method(Coroutines.kt:$line)"

suspend fun load(first: CompletableDeferred<String>): String {
    val text = first.await()
    val second = CompletableDeferred<String>()
    kept.add(second)
    return text + second.await()
}

suspend fun order(first: CompletableDeferred<String>): Int {
    val text = load(first)
    return text.length
}

suspend fun ship(): Int {
    delay(1_000_000)
    return 1
}

suspend fun nested(depth: Int): Int {
    if (depth == 0) {
        val last = ship()
        return last + 1
    }
    val inner = nested(depth - 1)
    return inner + 1
}

fun main(args: Array<String>) {
    val random = Random(args[1].toLong())
    val scope = CoroutineScope(Dispatchers.Default)
    val groups = ArrayList<Pair<Int, List<String>>>()
    val waiting = List(1 + random.nextInt(60)) { CompletableDeferred<String>() }
    waiting.forEach { kept.add(it); scope.launch { println(order(it)) } }
    groups.add(waiting.size to listOf(place("load", 20), place("order", 27), "invokeSuspend(Coroutines.kt:50)"))
    val completed = List(1 + random.nextInt(60)) { CompletableDeferred<String>() }
    completed.forEach { kept.add(it); scope.launch { println(order(it)) } }
    groups.add(completed.size to listOf(place("load", 23), place("order", 27), "invokeSuspend(Coroutines.kt:53)"))
    val shipped = 1 + random.nextInt(60)
    repeat(shipped) { kept.add(scope.async { ship() }) }
    groups.add(shipped to listOf(place("ship", 32), "invokeSuspend(Coroutines.kt:56)"))
    for (depth in 1..3) {
        val count = 1 + random.nextInt(30)
        repeat(count) { scope.launch { println(nested(depth)) } }
        val above = List(depth) { place("nested", 41) }
        groups.add(count to listOf(place("ship", 32), place("nested", 38)) + above + "invokeSuspend(Coroutines.kt:60)")
    }
    Thread.sleep(500)
    completed.forEach { it.complete("x") }
    Thread.sleep(1000)
    for ((count, lines) in groups) {
        println("coroutines\t$count\t" + lines.joinToString("\t"))
    }
    ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean::class.java).dumpHeap(args[0], true)
    System.exit(0)
}
