import { useEffect } from 'preact/hooks'
import { Logo } from '../components/logo.tsx'
import { strings } from '../strings.ts'
import type { Session } from './session.ts'

/** Between two tries while the server is unreachable. Milliseconds. */
const retryInterval = 3000

/** Shown after a page load while the stored token is verified. */
export function Resuming({ session, unreachable }: { session: Session; unreachable: boolean }) {
  useEffect(() => {
    if (!unreachable) return
    const timer = setInterval(() => void session.resume(), retryInterval)
    return () => clearInterval(timer)
  }, [unreachable, session])
  return (
    <main class="splash">
      <Logo size={48} />
      <h1 class="off-screen">{strings.product}</h1>
      <p role="status">
        {unreachable ? `${strings.connection.lost} ${strings.connection.retrying}` : strings.signIn.resuming}
      </p>
      {unreachable && (
        <div class="splash-actions">
          <button type="button" class="button primary" onClick={() => void session.resume()}>
            {strings.connection.retryNow}
          </button>
          <button type="button" class="button" onClick={session.signOut}>
            {strings.header.signOut}
          </button>
        </div>
      )}
    </main>
  )
}
