import { fuzzJwts, fuzzKeys, fuzzTokens } from './credentials.ts'
import { fuzzDocumented } from './documented.ts'
import { fuzzForms } from './forms.ts'
import { fuzzLarge } from './large.ts'
import { fuzzLinks } from './links.ts'
import { fuzzListing } from './listing.ts'
import { fuzzObjects } from './objects.ts'
import { seeded } from './random.ts'
import { fuzzHeads, fuzzValues } from './requests.ts'
import { openTarget, type Target } from './target.ts'
import { fuzzNames, fuzzTus, fuzzUploads } from './uploads.ts'

interface Kind {
  readonly fuzz: (target: Target) => Promise<unknown>
  /** The number of runs in a round, and how many run concurrently. */
  readonly times: number
  readonly atOnce: number
}

/** All kinds of hostile input; forms are read without a server. */
const kinds: Readonly<Record<string, Kind>> = {
  heads: { fuzz: fuzzHeads, times: 60, atOnce: 20 },
  values: { fuzz: fuzzValues, times: 25, atOnce: 5 },
  uploads: { fuzz: fuzzUploads, times: 25, atOnce: 5 },
  names: { fuzz: fuzzNames, times: 25, atOnce: 5 },
  tus: { fuzz: fuzzTus, times: 6, atOnce: 3 },
  tokens: { fuzz: fuzzTokens, times: 60, atOnce: 20 },
  jwts: { fuzz: fuzzJwts, times: 40, atOnce: 10 },
  links: { fuzz: fuzzLinks, times: 60, atOnce: 10 },
  keys: { fuzz: fuzzKeys, times: 20, atOnce: 5 },
  documented: { fuzz: fuzzDocumented, times: 15, atOnce: 5 },
  objects: { fuzz: fuzzObjects, times: 15, atOnce: 5 },
  // One at a time, because each measures the CPU of the service.
  large: { fuzz: fuzzLarge, times: 10, atOnce: 1 },
  listing: { fuzz: fuzzListing, times: 1, atOnce: 1 },
  forms: { fuzz: ({ random }) => fuzzForms(100, random.below(2 ** 31)), times: 1, atOnce: 1 },
}

export const kindNames = Object.keys(kinds)

/** Figures of one kind over all rounds. */
export interface Figures {
  inputs: number
  readonly failures: string[]
}

/**
 * Rounds of hostile input against a real server, which is checked after each round. The seed determines what is sent.
 * The order of concurrent requests depends on the server's timing.
 */
export async function fuzz(options: {
  readonly rounds: number
  readonly seed: number
  readonly only?: string
  /** Called after each round; false ends the run. */
  readonly onRound: (round: number) => boolean
}): Promise<{ figures: Map<string, Figures>; statuses: Map<number, number> }> {
  const random = seeded(options.seed)
  await using target = await openTarget(random)
  const checks: Figures = { inputs: 0, failures: [] }
  const figures = new Map<string, Figures>()
  const asked = Object.entries(kinds).filter(([name]) => name === (options.only ?? name))
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const [name, kind] of asked) {
      const figure = figures.get(name) ?? { inputs: 0, failures: [] }
      figures.set(name, figure)
      figure.failures.push(...(await runKind(kind, target, random.below(2 ** 31))))
      figure.inputs += kind.times
      await target.checkHealth().catch((error: unknown) => figure.failures.push(`${error}`))
    }
    checks.inputs += 1
    await target.settle().catch((error: unknown) => checks.failures.push(`round ${round}: ${error}`))
    if (!options.onRound(round)) break
    if ([...figures.values(), checks].some(({ failures }) => failures.length > 20)) break
  }
  return { figures: figures.set('checks', checks), statuses: target.statuses }
}

async function runKind({ fuzz, times, atOnce }: Kind, target: Target, seed: number): Promise<string[]> {
  const failures: string[] = []
  const waiting = Array.from({ length: times }, (_, index) => index).values()
  async function lane(): Promise<void> {
    for (const index of waiting) {
      const own = { ...target, random: seeded(seed + index) }
      await fuzz(own).catch((error: unknown) => {
        failures.push(`seed ${seed + index}: ${error instanceof Error ? error.message : String(error)}`)
      })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, lane))
  return failures
}
