//! Starting the servers: two listeners and the webhook task, on a thread with a runtime of its own.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use super::{Inner, Options, SimError, SimHandle};
use crate::hooks;
use crate::http::serve::{Setup, accept};
use crate::http::{serve, storage};
use crate::shared::Shared;
use crate::state::State;
use crate::world::World;

fn listen() -> std::io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let root = format!("http://{}", listener.local_addr()?);
    Ok((listener, root))
}

pub(super) fn start(world: &World, options: Options) -> Result<SimHandle, SimError> {
    let mut state = State::build(world)?;
    let (api, api_root) = listen()?;
    let (second, storage_root) = listen()?;
    let prefix = options.prefix.trim_end_matches('/').to_owned();
    let base = format!("{api_root}{prefix}");
    state.base.clone_from(&base);
    state.storage.clone_from(&storage_root);
    if let Some(html) = options.html {
        html.trim_end_matches('/').clone_into(&mut state.html);
    }
    let setup = Arc::new(Setup {
        prefix,
        latency: options.latency.or(world.latency.map(|l| l.0)),
    });
    let shared = Arc::new(Shared::new(state));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (api, second) = {
        let _inside = runtime.enter();
        (
            tokio::net::TcpListener::from_std(api)?,
            tokio::net::TcpListener::from_std(second)?,
        )
    };
    let for_thread = shared.clone();
    let thread = std::thread::Builder::new()
        .name("simulated-github".to_owned())
        .spawn(move || {
            runtime.block_on(async move {
                let (one, two) = (for_thread.clone(), for_thread.clone());
                let api = accept(api, move |request| serve::call(one.clone(), setup.clone(), request));
                let storage = accept(second, move |request| storage::call(two.clone(), request));
                let hooks = hooks::deliver::run(for_thread);
                tokio::select! {
                    () = api => {}
                    () = storage => {}
                    () = hooks => {}
                    _ = stopped => {}
                }
            });
        })?;
    let inner = Inner {
        shared,
        base,
        storage: storage_root,
        stop: Some(stop),
        thread: Some(thread),
    };
    Ok(SimHandle { inner: Arc::new(inner) })
}
