import { randomUUID } from 'node:crypto'

/** A bucket name that no other test uses: tests of one worker share a server. */
export const uniqueName = (name: string): string => `${name}-${randomUUID().slice(0, 8)}`
