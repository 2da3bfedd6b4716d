"""Recurrent networks by torch.nn.RNN, LSTM and GRU: results, and gradients of everything."""

import torch
from torch.nn.utils import rnn

from golden_case import Case, gradients, leaf

MODULES = {"relu": torch.nn.RNN, "tanh": torch.nn.RNN, "lstm": torch.nn.LSTM, "gru": torch.nn.GRU}


def parameter_names(layers, bidirectional, projected, bias):
    """In the order of the flat tensor of weights: all matrices, then all biases."""
    matrices = ["weight_ih", "weight_hh"] + (["weight_hr"] if projected else [])
    biases = {"none": [], "input": ["bias_ih"], "recurrent": ["bias_hh"],
              "both": ["bias_ih", "bias_hh"]}[bias]
    for kinds in (matrices, biases):
        for layer in range(layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                for kind in kinds:
                    yield f"{kind}_l{layer}{suffix}"


def network(name, mode, t=4, n=2, c=3, h=3, layers=1, bidirectional=False, projection=0,
            bias="both", lengths=None, packed=False, padding_value=0.0, states=True):
    case = Case(name)
    options = {"nonlinearity": mode} if mode in ("relu", "tanh") else {}
    if projection:
        options["proj_size"] = projection
    module = MODULES[mode](c, h, layers, bias=bias != "none", bidirectional=bidirectional,
                           **options).double()
    names = list(parameter_names(layers, bidirectional, projection, bias))
    parameters = dict(module.named_parameters())
    with torch.no_grad():
        for key, parameter in parameters.items():
            if key in names:
                parameter.copy_(case.random(*parameter.shape, low=-1, high=1))
            else:
                parameter.zero_()
    weights = [parameters[key] for key in names]

    pseudo_layers = layers * (2 if bidirectional else 1)
    x = leaf(case.random(t, n, c))
    if lengths and packed:
        x = leaf(rnn.pack_padded_sequence(x.detach(), torch.tensor(lengths)).data)
    hx = leaf(case.random(pseudo_layers, n, projection or h, low=-1, high=1))
    cx = leaf(case.random(pseudo_layers, n, h, low=-1, high=1))
    initial = [hx, cx] if mode == "lstm" else [hx]

    source = x
    if packed:
        counts = [sum(length > step for length in lengths) for step in range(max(lengths))]
        source = rnn.PackedSequence(x, torch.tensor(counts))
    elif lengths:
        source = rnn.pack_padded_sequence(x, torch.tensor(lengths), enforce_sorted=False)
    given = (tuple(initial) if mode == "lstm" else hx) if states else None
    y, final = module(source, given)
    final = list(final) if mode == "lstm" else [final]
    if packed:
        y = y.data
    elif lengths:
        y, _ = rnn.pad_packed_sequence(y, padding_value=padding_value, total_length=t)

    attributes = {"mode": mode, "hidden_size": h, "layers": layers, "bidirectional": bidirectional,
                  "bias": bias, "projection_size": projection,
                  "layout": "packed" if packed else "padded", "padding_value": padding_value}
    operands = {}
    case.input("x", x)
    case.input("weights", torch.cat([weight.detach().flatten() for weight in weights]))
    if lengths:
        case.input("lengths", torch.tensor(lengths), "i32")
        operands["seq_lengths"] = "lengths"
    state_names = ["hx", "cx"][:len(initial)] if states else []
    for key, value in zip(state_names, initial):
        case.input(key, value)
        operands[key] = key
    case.output("y", y)
    final_names = ["hy", "cy"][:len(final)]
    for key, value in zip(final_names, final):
        case.output(key, value)
    for key in ("reserve", "dgates"):
        case.tensors.append({"name": key, "kind": "intermediate", "dtype": "f64"})
    case.node("rnn_forward", {"x": "x", "weights": "weights", **operands},
              {"y": "y", "reserve": "reserve", **{key: key for key in final_names}}, **attributes)

    d_y = case.input("dy", case.random(*y.shape))
    seeds = [d_y]
    for key, value in zip(final_names, final):
        seeds.append(case.input("d" + key, case.random(*value.shape)))
    wanted = [x] + (initial if states else []) + weights
    results = gradients([y] + final, seeds, wanted)
    data_names = ["dx"] + ["d" + key for key in state_names]
    for key, value in zip(data_names, results):
        case.output(key, value)
    case.node("rnn_backward_data",
              {"dy": "dy", "weights": "weights", "reserve": "reserve", **operands,
               **{"d" + key: "d" + key for key in final_names}},
              {**{key: key for key in data_names}, "dgates": "dgates"}, **attributes)
    case.output("dweights", torch.cat([value.flatten() for value in results[len(data_names):]]))
    kept = {key: value for key, value in operands.items() if key != "cx"}
    case.node("rnn_backward_weights", {"x": "x", "reserve": "reserve", "dgates": "dgates", **kept},
              {"dweights": "dweights"}, **attributes)
    return case


def cases():
    yield network("rnn_relu", "relu")
    yield network("rnn_tanh_bidirectional", "tanh", layers=2, bidirectional=True, h=2)
    yield network("rnn_tanh_no_bias", "tanh", bias="none", states=False)
    yield network("rnn_lstm", "lstm")
    yield network("rnn_lstm_no_bias", "lstm", bias="none", layers=2)
    yield network("rnn_lstm_bidirectional", "lstm", t=3, h=2, layers=2, bidirectional=True)
    yield network("rnn_lstm_projection", "lstm", t=3, h=4, projection=2)
    yield network("rnn_lstm_projection_bidirectional", "lstm", t=3, h=3, projection=2, layers=3,
                  bidirectional=True)
    yield network("rnn_lstm_packed", "lstm", t=5, n=3, h=2, lengths=[5, 3, 1], packed=True,
                  layers=2, bidirectional=True)
    yield network("rnn_lstm_lengths", "lstm", t=5, n=3, h=2, lengths=[2, 4, 1], layers=2,
                  padding_value=0.5)
    yield network("rnn_gru", "gru", layers=3, h=2)
    yield network("rnn_gru_bidirectional", "gru", t=3, h=2, layers=2, bidirectional=True)
    yield network("rnn_gru_packed", "gru", t=4, n=3, lengths=[4, 4, 2], packed=True)
    yield network("rnn_gru_lengths", "gru", t=4, n=3, h=2, lengths=[1, 4, 3], bidirectional=True,
                  padding_value=-1.0, states=False)
    yield network("rnn_gru_input_bias", "gru", bias="input")
    yield network("rnn_gru_recurrent_bias", "gru", bias="recurrent")
    yield network("rnn_lstm_recurrent_bias", "lstm", bias="recurrent")
    yield network("rnn_relu_input_bias", "relu", bias="input", layers=2)
