import { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The answer that a connection waits for, null where no request was understood. Node itself looks in the same place. */
export const presentAnswer = (socket: Socket): ServerResponse | null =>
  '_httpMessage' in socket && socket._httpMessage instanceof ServerResponse ? socket._httpMessage : null
