import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { IconButton } from '../components/controls.tsx'
import { Logo } from '../components/icon.tsx'
import { DisplaySettings, type Preferences } from '../preferences.tsx'
import type { IssuerInfo } from '../service/sign-in-info.ts'
import { strings } from '../strings.ts'
import { loadIssuer } from './issuer.ts'
import type { Session, SessionState } from './session.ts'

type Out = Extract<SessionState, { at: 'signed-out' }>

/** Offers the sign-in with the issuer, if the service has one. */
function IssuerButton({ busy, onSignIn }: { busy: boolean; onSignIn: (issuer: IssuerInfo) => void }) {
  const [issuer, setIssuer] = useState<IssuerInfo | null>(null)
  useEffect(() => void loadIssuer().then(setIssuer), [])
  if (issuer === null) return null
  return (
    <>
      <button
        type="button"
        class="button primary wide issuer"
        aria-disabled={busy}
        onClick={() => !busy && onSignIn(issuer)}
      >
        {strings.signIn.withIssuer(issuer.name)}
      </button>
      <p class="or muted">{strings.signIn.or}</p>
    </>
  )
}

/** The sign-in form. Password managers store the host as the user name and the token as the password. */
export function SignIn({
  session,
  state,
  preferences,
}: {
  session: Session
  state: Out
  preferences: Preferences
}) {
  const input = useRef<HTMLInputElement>(null)
  const keepSignedIn = useRef<HTMLInputElement>(null)
  const [visible, setVisible] = useState(false)
  useEffect(() => {
    document.title = `${strings.signIn.submit} – ${strings.product}`
  }, [])
  // At once, so that it takes the focus from nothing that a person has chosen since.
  useLayoutEffect(() => {
    if (!state.busy) input.current?.focus()
    if (state.failed) input.current?.select()
  }, [state])
  return (
    <main class="sign-in">
      <form
        class="sign-in-card"
        onSubmit={(event) => {
          event.preventDefault()
          if (!state.busy)
            void session.signIn(input.current?.value ?? '', keepSignedIn.current?.checked ?? false)
        }}
      >
        <p class="wordmark">
          <Logo size={36} />
          {strings.product}
        </p>
        <h1>{strings.signIn.title}</h1>
        <IssuerButton
          busy={state.busy}
          onSignIn={(issuer) => void session.signInWithIssuer(issuer, keepSignedIn.current?.checked ?? false)}
        />
        <p class="muted" id="sign-in-about">
          {strings.signIn.about}
        </p>
        <input
          class="off-screen"
          type="text"
          name="username"
          autocomplete="username"
          value={location.host}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <label for="token">{strings.signIn.token}</label>
        <div class="token-field">
          <input
            ref={input}
            id="token"
            name="password"
            type="password"
            autocomplete="current-password"
            autocapitalize="none"
            spellcheck={false}
            placeholder="mbk…"
            aria-describedby="sign-in-about sign-in-message"
            aria-invalid={state.failed}
          />
          <IconButton
            icon={visible ? 'eyeOff' : 'eye'}
            label={visible ? strings.signIn.hide : strings.signIn.show}
            onClick={() => {
              if (input.current) input.current.type = visible ? 'password' : 'text'
              setVisible(!visible)
            }}
          />
        </div>
        <p id="sign-in-message" class={state.failed ? 'message bad' : 'message'} role="status">
          {state.message}
        </p>
        <label class="keep-signed-in">
          <input ref={keepSignedIn} type="checkbox" defaultChecked aria-describedby="keep-about" />
          {strings.signIn.keep}
        </label>
        <p id="keep-about" class="muted small">
          {strings.signIn.keepHint}
        </p>
        <button type="submit" class="button primary wide" aria-disabled={state.busy}>
          {state.busy ? strings.signIn.busy : strings.signIn.submit}
        </button>
        <p class="muted small">{strings.signIn.noToken}</p>
      </form>
      <div class="sign-in-settings">
        <DisplaySettings preferences={preferences} quiet />
      </div>
    </main>
  )
}

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
