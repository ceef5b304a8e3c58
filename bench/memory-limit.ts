import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

// A limit of memory for processes, as a container has it: a control group of Linux. Needs root.

export interface MemoryLimit {
  /** What a command line begins with, so that the program runs within the limit. */
  readonly prefix: readonly string[]
  /** Resident bytes except the cache of files, which the kernel can reclaim. */
  readonly unreclaimable: () => number
  /** How many processes the kernel has killed because of the limit. */
  readonly kills: () => number
  /** To be called when its processes have ended. */
  readonly remove: () => Promise<void>
}

/** Both versions of the interface: where it is mounted, a file of the mount that the other one does not have, and its other files. */
const interfaces = [
  {
    mount: '/sys/fs/cgroup/memory',
    sign: 'memory.limit_in_bytes',
    limit: 'memory.limit_in_bytes',
    kills: 'memory.oom_control',
    unreclaimable: ['total_rss'],
  },
  {
    mount: '/sys/fs/cgroup',
    sign: 'cgroup.controllers',
    limit: 'memory.max',
    kills: 'memory.events',
    unreclaimable: ['anon', 'kernel'],
  },
] as const

/** Throws if the machine lets this user create no control group of memory. */
export function limitMemory(bytes: number): MemoryLimit {
  const found = interfaces.find(({ mount, sign }) => existsSync(join(mount, sign)))
  if (found === undefined) throw new Error('the machine has no control groups of memory')
  const group = join(found.mount, `mediabucket-bench-${process.pid}`)
  mkdirSync(group)
  writeFileSync(join(group, found.limit), String(bytes))
  const figure = (file: string, name: string) =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(readFileSync(join(group, file), 'utf8'))?.[1] ?? 0)
  return {
    prefix: ['sh', '-c', `echo $$ > ${join(group, 'cgroup.procs')} && exec "$@"`, 'sh'],
    unreclaimable: () => found.unreclaimable.reduce((sum, name) => sum + figure('memory.stat', name), 0),
    kills: () => figure(found.kills, 'oom_kill'),
    async remove() {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return rmdirSync(group)
        } catch (error) {
          // The last processes may still be ending.
          if (attempt === 50) throw error
          await sleep(100)
        }
      }
    },
  }
}
