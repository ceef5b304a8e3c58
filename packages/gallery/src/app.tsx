import { BucketPage } from './bucket-page.tsx'
import { Resuming } from './session/resuming.tsx'
import type { Session } from './session/session.ts'
import { SignIn } from './session/sign-in.tsx'

export function App({ session }: { session: Session }) {
  const state = session.state.value
  if (state.at === 'signed-in')
    return <BucketPage key={state.signedIn.token} signedIn={state.signedIn} session={session} />
  if (state.at === 'resuming') return <Resuming session={session} unreachable={state.unreachable} />
  return <SignIn session={session} state={state} />
}
