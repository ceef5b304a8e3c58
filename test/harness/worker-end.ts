/** Runs `clean`, which must be synchronous, when this Vitest worker ends. */
export function atWorkerEnd(clean: () => void): void {
  process.once('exit', clean)
  // Vitest ends its workers with SIGTERM, which by default calls no listener of `exit`.
  if (!process.listeners('SIGTERM').includes(endWorker)) process.once('SIGTERM', endWorker)
}

const endWorker = () => process.exit()
