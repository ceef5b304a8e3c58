import { Type } from 'typebox'
import { Value } from 'typebox/value'

/** Orders in which an upload is not durable; broken-orders.ts applies them to a server. */
export const brokenOrders = [
  'no sync of the file',
  'rename before the intent',
  'no sync of the directory',
  'no sync of a new directory',
  'rename before sync',
  'commit before rename',
  'commit without sync',
  'offset before sync',
  'item after offset',
] as const

export type BrokenOrder = (typeof brokenOrders)[number]

/** The variable that names the broken order of a server. */
export const brokenOrderVariable = 'BROKEN_ORDER'

export const readBrokenOrder = (env: NodeJS.ProcessEnv): BrokenOrder =>
  Value.Parse(Type.Enum([...brokenOrders]), env[brokenOrderVariable])
