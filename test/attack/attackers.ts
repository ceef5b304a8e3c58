import { setTimeout as wait } from 'node:timers/promises'
import { attacks, type Targets } from './attacks.ts'

// A separate process that runs all attacks concurrently until it is killed. It reports over IPC how often each completed.

/** Each attack uses its own addresses. */
const addressOf = (attack: number, nth: number) => `127.${10 + attack}.0.${1 + (nth % 200)}`

async function attackForever(targets: Targets): Promise<void> {
  const done: Record<string, number> = {}
  setInterval(() => process.send?.(done), 100)
  const lanes = attacks.flatMap(({ name, width, run }, at) =>
    Array.from({ length: width }, async (_, nth) => {
      for (;;) {
        await run(targets, addressOf(at, nth))
        done[name] = (done[name] ?? 0) + 1
        await wait(5)
      }
    }),
  )
  await Promise.all(lanes)
}

process.once('message', (targets: Targets) => void attackForever(targets))
