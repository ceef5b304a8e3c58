// What unbound-methods.test.ts expects the check to find: a class behind an interface, and each way to lose `this`.

interface Counter {
  readonly next: () => number
}

class UpwardCounter implements Counter {
  #count = 0

  next(): number {
    this.#count += 1
    return this.#count
  }
}

export function callCounter(counter: Counter): number {
  return counter.next() + (typeof counter.next === 'function' ? counter.next.bind(counter)() : 0)
}

interface Pile<Value> {
  push(value: Value): void
}

class Stack<Value, Label> implements Pile<Value> {
  readonly labels: Label[] = []
  readonly #values: Value[] = []

  push(value: Value): void {
    this.#values.push(value)
  }
}

export function loseThis(
  counter: Counter = new UpwardCounter(),
  pile: Pile<number> = new Stack<number, string>(),
): readonly unknown[] {
  const { next } = counter
  return [next, { ...counter }, [1].map(counter.next), pile.push]
}
