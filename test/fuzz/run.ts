import { parseArgs } from 'node:util'
import { fuzz, kindNames } from './fuzz.ts'

// npm run test:fuzz -- --rounds 500 --seed 7 --only tus: hostile input against a real server. --minutes bounds its time;
// Ctrl-C ends it after the current round, with the table.

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    seed: { type: 'string', default: `${Date.now() % 2 ** 31}` },
    only: { type: 'string' },
    minutes: { type: 'string', default: 'Infinity' },
  },
})
const [rounds, seed] = [Number(values.rounds), Number(values.seed)]
if (!Number.isInteger(rounds) || rounds < 1) throw new Error('--rounds takes a whole number from 1')
if (!Number.isInteger(seed)) throw new Error('--seed takes a whole number')
if (values.only !== undefined && !kindNames.includes(values.only))
  throw new Error(`--only takes one of ${kindNames.join(', ')}`)

console.log(`seed ${seed}`)
const began = performance.now()
let isInterrupted = false
process.once('SIGINT', () => {
  isInterrupted = true
})
const seconds = () => Math.round((performance.now() - began) / 1000)
const { figures, statuses } = await fuzz({
  rounds,
  seed,
  ...(values.only === undefined ? {} : { only: values.only }),
  onRound: (round) => {
    const goesOn = !isInterrupted && seconds() < Number(values.minutes) * 60
    if (round % 10 === 0 || round === rounds || !goesOn)
      console.error(`${`${seconds()}`.padStart(5)} s  ${round} rounds of at most ${rounds}`)
    return goesOn
  },
})
for (const [name, { failures }] of figures) for (const failure of failures) console.log(`${name}: ${failure}`)
console.log('kind       inputs  failures')
for (const [name, { inputs, failures }] of figures)
  console.log(`${name.padEnd(9)}${`${inputs}`.padStart(8)}${`${failures.length}`.padStart(10)}`)
const shown = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${status} × ${count}`)
console.log(`responses on raw connections: ${shown.join(', ')}`)
if ([...figures.values()].some(({ failures }) => failures.length > 0)) process.exitCode = 1
