import { Type } from 'typebox'
import { Value } from 'typebox/value'

/** Orders in which an upload is not durable; broken-orders.ts makes a server do them. */
export const brokenOrders = [
  'no sync of the file',
  'no sync of the directory',
  'no sync of a new directory',
  'rename before sync',
  'commit before rename',
  'commit without sync',
  'offset before sync',
  'item after offset',
] as const

type BrokenOrder = (typeof brokenOrders)[number]

const variable = 'BROKEN_ORDER'
const preload = new URL('broken-orders.ts', import.meta.url)

/** The settings of a server that is broken in this way. */
export const withBrokenOrder = (order: BrokenOrder): Record<string, string> => ({
  NODE_OPTIONS: `--import ${preload.href}`,
  [variable]: order,
})

export const readBrokenOrder = (env: NodeJS.ProcessEnv): BrokenOrder =>
  Value.Parse(Type.Enum([...brokenOrders]), env[variable])
