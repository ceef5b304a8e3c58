import { BucketPage } from './bucket-page.tsx'
import type { Preferences } from './preferences.ts'
import { Resuming } from './session/resuming.tsx'
import type { Session } from './session/session.ts'
import { SignIn } from './session/sign-in.tsx'

export function App({ session, preferences }: { session: Session; preferences: Preferences }) {
  const state = session.state.value
  if (state.at === 'signed-in')
    return (
      <BucketPage
        key={state.signedIn.token}
        signedIn={state.signedIn}
        session={session}
        preferences={preferences}
      />
    )
  if (state.at === 'resuming') return <Resuming session={session} unreachable={state.unreachable} />
  return <SignIn session={session} state={state} preferences={preferences} />
}
