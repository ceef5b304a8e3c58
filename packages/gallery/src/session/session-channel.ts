import { serviceUrl } from '../service/urls.ts'

/** Reaches the other tabs of this gallery in this browser. No token travels on it. */
export interface SessionChannel {
  /** Signs out every other tab. */
  signOut(): void
}

export function openSessionChannel(onSignOut: () => void): SessionChannel {
  const channel = new BroadcastChannel(`mediabucket.session ${serviceUrl().pathname}`)
  channel.onmessage = ({ data }) => {
    if (data === 'signed-out') onSignOut()
  }
  return { signOut: () => channel.postMessage('signed-out') }
}
