import { totalmem } from 'node:os'

/** Bytes. bin/mediabucket.js has the same number. */
const little = 512 * 2 ** 20

/** Whether the machine, or the container in which this process runs, has little memory: then it starts fewer threads and caches less. */
export const hasLittleMemory: boolean = Math.min(totalmem(), process.constrainedMemory()) < little
